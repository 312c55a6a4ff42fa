/** The graph of a plan, with the status of its steps where an execution is given. A chunk of its own. */
import {
  Background,
  Controls,
  Handle,
  Position,
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
  type Edge,
  type Node,
  type NodeProps,
} from '@xyflow/react';
import '@xyflow/react/dist/base.css';
import { useNavigate } from '@tanstack/react-router';
import { createContext, use, useEffect, useMemo, useRef, useState } from 'react';
import { Failed, Loading } from '@/design/parts';
import { StatusIcon, statusLabel, statusTone } from '@/design/status';
import { Name } from '@/design/text';
import { useQuery } from '@tanstack/react-query';
import type { Counts } from '@/features/execution/model';
import type { Plan, PlanStep } from '@/features/workflows/queries';
import { layoutOf, type Layout } from './layout';
import './style.css';

export interface GraphProps {
  plan: Plan;
  /** Statuses of the instances of each step; without an execution there are none. */
  counts?: Map<string, Counts>;
  chosen?: string | undefined;
  /** The instance that a step leads to; null if there is none. */
  link?: (template: string) => string | null;
  /** Called instead of following a link. */
  choose?: (template: string) => void;
}

type StepNode = Node<
  { step: PlanStep; template: string; isContainer: boolean; isAcross: boolean; isCleanup: boolean },
  'step'
>;

/** What changes without a new layout: statuses and the chosen step. */
interface Shown {
  counts: Map<string, Counts> | undefined;
  chosen: string | undefined;
  press: ((template: string) => void) | undefined;
}

const ShownContext = createContext<Shown>({ counts: undefined, chosen: undefined, press: undefined });

/** Statuses from the one to look at first. */
const ORDER = ['failed', 'waiting_approval', 'running', 'waiting', 'cancelled', 'completed', 'skipped'];

/** Statuses of a step; those of a `forEach` step include its rounds. */
function statusOf(
  counts: Map<string, Counts> | undefined,
  template: string,
  isEach: boolean,
): { status: string | null; text: string } {
  const own = counts?.get(isEach ? `${template}[]` : template) ?? counts?.get(template);
  if (!own) return { status: null, text: '' };
  const status = ORDER.find(name => own[name]) ?? null;
  const all = Object.values(own).reduce((sum, count) => sum + count, 0);
  const parts = Object.entries(own).map(([name, count]) => `${count} ${statusLabel(name).toLowerCase()}`);
  return { status, text: all > 1 ? parts.join(', ') : statusLabel(status ?? '') };
}

/** The kind of a step in a few words. */
function kindOf(step: PlanStep): string {
  if (step.type === 'effect') return step.effect ?? 'effect';
  if (step.type === 'subworkflow') return `workflow ${step.workflow ?? ''}`;
  if (step.type === 'signal') return `signal ${step.signal ?? ''}`;
  if (step.type === 'each') return `for each, ${step.body?.[0]?.effect ?? step.body?.[0]?.type ?? ''}`;
  if (step.type === 'loop') return step.forEach ? 'for each' : 'loop';
  return step.type;
}

function StepView({ data: { step, template, isContainer, isAcross, isCleanup } }: NodeProps<StepNode>) {
  const { counts, chosen, press } = use(ShownContext);
  const { status, text } = statusOf(counts, template, step.type === 'each');
  const tone = status ? `tone-${statusTone(status)}` : counts ? 'not-reached' : '';
  const content = (
    <>
      {status && (
        <span className="node-icon">
          <StatusIcon status={status} />
        </span>
      )}
      <span className="node-texts">
        <span className="node-name truncate">
          <Name text={step.id} max={60} />
        </span>
        <span className="node-kind truncate">
          {isCleanup && 'finally · '}
          {kindOf(step)}
          {text && ` · ${text}`}
          {!text && step.when !== undefined && ' · conditional'}
        </span>
      </span>
    </>
  );
  const names = ['node', tone, isContainer ? 'container' : '', template === chosen ? 'chosen' : '']
    .filter(Boolean)
    .join(' ');
  return (
    <div className={names}>
      <Handle type="target" position={isAcross ? Position.Left : Position.Top} isConnectable={false} />
      {press ? (
        <button
          type="button"
          className="node-button nodrag"
          onClick={() => press(template)}
          aria-pressed={template === chosen}
        >
          {content}
        </button>
      ) : (
        <div className="node-button">{content}</div>
      )}
      <Handle type="source" position={isAcross ? Position.Right : Position.Bottom} isConnectable={false} />
    </div>
  );
}

const NODE_TYPES = { step: StepView };

function nodesOf(layout: Layout, isAcross: boolean, cleanup: ReadonlySet<string>): StepNode[] {
  return layout.places.map(({ template, step, parent, isContainer, x, y, width, height }) => ({
    id: template,
    type: 'step',
    position: { x, y },
    width,
    height,
    ...(parent ? { parentId: parent } : {}),
    data: { step, template, isContainer, isAcross, isCleanup: !parent && cleanup.has(template) },
    draggable: false,
    selectable: false,
    focusable: false,
  }));
}

function edgesOf(layout: Layout, counts: Map<string, Counts> | undefined): Edge[] {
  return layout.connections.map(({ id, from, to, label, kind }) => {
    const target = counts?.get(to);
    const isTaken = target !== undefined && Object.keys(target).some(status => status !== 'skipped');
    return {
      id,
      source: from,
      target: to,
      label: label || undefined,
      className: `edge-${kind} ${counts ? (isTaken ? 'taken' : 'not-taken') : ''}`,
      focusable: false,
      selectable: false,
    };
  });
}

/** Keeps the drawing in view when its size or the plan changes. */
function Fit({ layout }: { layout: Layout }) {
  const { fitView } = useReactFlow();
  useEffect(() => void fitView({ maxZoom: 1, minZoom: 0.55, padding: 0.08 }), [layout, fitView]);
  return null;
}

/** Height of the drawing in pixels: that of its content within bounds. */
function heightOf(layout: Layout | undefined): number {
  const bottom = Math.max(
    0,
    ...(layout?.places ?? []).filter(place => !place.parent).map(place => place.y + place.height),
  );
  return Math.min(440, Math.max(140, bottom + 60));
}

export default function Graph({ plan, counts, chosen, link, choose }: GraphProps) {
  const navigate = useNavigate();
  const box = useRef<HTMLDivElement>(null);
  const [isAcross, setAcross] = useState(true);
  useEffect(() => setAcross((box.current?.clientWidth ?? 1000) > 620), []);
  const direction = isAcross ? 'RIGHT' : 'DOWN';
  const layout = useQuery({
    queryKey: ['layout', plan.workflowHash, direction],
    queryFn: () => layoutOf(plan, direction),
    staleTime: Infinity,
    placeholderData: before => before,
  });
  const cleanup = useMemo(() => new Set((plan.finally ?? []).map(({ id }) => id)), [plan]);
  const nodes = useMemo(
    () => (layout.data ? nodesOf(layout.data, isAcross, cleanup) : []),
    [layout.data, isAcross, cleanup],
  );
  const edges = useMemo(() => (layout.data ? edgesOf(layout.data, counts) : []), [layout.data, counts]);
  const shown = useMemo(() => {
    const follow = (template: string) => {
      const each = link?.(`${template}[]`) ?? link?.(template);
      if (each)
        void navigate({
          to: '.',
          search: before => ({ ...before, step: each, attempt: undefined }),
          resetScroll: false,
        });
    };
    return { counts, chosen: chosen?.replace(/\[\]$/, ''), press: choose ?? (link ? follow : undefined) };
  }, [counts, chosen, choose, link, navigate]);
  return (
    <div ref={box} className="graph" style={{ height: heightOf(layout.data) }}>
      {layout.isError && <Failed error={layout.error} />}
      {!layout.data && !layout.isError && <Loading what="the layout" />}
      {layout.data && (
        <ShownContext value={shown}>
          <ReactFlowProvider>
            <ReactFlow
              nodes={nodes}
              edges={edges}
              nodeTypes={NODE_TYPES}
              nodesDraggable={false}
              nodesConnectable={false}
              nodesFocusable={false}
              edgesFocusable={false}
              elementsSelectable={false}
              onlyRenderVisibleElements={nodes.length > 200}
              minZoom={0.1}
              maxZoom={2}
              zoomOnScroll={false}
              preventScrolling={false}
              panOnScroll={false}
              proOptions={{ hideAttribution: true }}
            >
              <Background gap={18} size={1} />
              <Controls showInteractive={false} orientation="horizontal" position="top-right" />
              <Fit layout={layout.data} />
            </ReactFlow>
          </ReactFlowProvider>
        </ShownContext>
      )}
    </div>
  );
}
