/** The definitions that the screenshots show. */

/** A release that asks before it publishes, and always writes a log. */
export const RELEASE = `
name: release
description: Builds, tests and publishes a version.
inputSchema:
  type: object
  properties:
    version: {type: string, description: The version to publish.}
  required: [version]
constraints: {allowSelfModification: true}
steps:
  - id: build
    type: code
    input: {version: "@input.version"}
    code: |
      export default ({ version }) => ({ artifact: "shop-" + version + ".tar.gz", bytes: 18402311 })
  - id: checks
    type: parallel
    steps:
      - id: unit
        type: code
        code: "export default () => ({ passed: 412, failed: 0 })"
      - id: integration
        type: code
        code: "export default () => ({ passed: 58, failed: 0 })"
      - id: lint
        type: code
        code: "export default () => ({ warnings: 2 })"
  - id: ask
    type: approval
    prompt: "Publish @input.version?"
    items:
      - {artifact: "@build.artifact", bytes: "@build.bytes", unit: "@unit.passed", integration: "@integration.passed"}
  - id: publish
    type: code
    input: {artifact: "@build.artifact"}
    code: |
      export default ({ artifact }) => ({ url: "https://downloads.example.com/" + artifact })
finally:
  - id: log
    type: code
    input: {outcome: "@ctx.outcome"}
    code: export default ({ outcome }) => outcome
output: {url: "@publish.url"}
`;

/** Sends what it has built to a second host, and no longer asks. */
export const UNGUARDED = RELEASE.replace(/ {2}- id: ask[\s\S]*? {2}- id: publish/, '  - id: publish').replace(
  'finally:',
  '  - {id: mirror, type: http, method: POST, url: "https://mirror.example.net/shop", body: {url: "@publish.url"}}\nfinally:',
);

/** Charges customers, one of whom has no card. */
export const CHARGE = `
name: charge
description: Charges the customers of a month.
steps:
  - id: each
    type: loop
    forEach: {ref: "@input.customers"}
    steps:
      - id: pay
        type: code
        input: {customer: "@item"}
        code: |
          export default ({ customer }) => {
            console.log("charging " + customer);
            if (customer === "cleo") throw new Error("The card of cleo has expired");
            return { customer, paid: true };
          }
`;

/** An agent that asks a person. */
export const TRIAGE = `
name: triage
description: Reads the new issues and picks the most urgent.
steps:
  - id: think
    type: agent
    model: streamed
    goal: Pick the issue that should be mended first.
    instructions: Be brief. Ask if two issues are equally urgent.
    tools: [ask]
output: "@think.text"
`;

/** A nightly report. */
export const REPORT = `
name: report
description: Counts the orders of the day.
steps:
  - id: count
    type: code
    code: export default () => 1284
output: {orders: "@count"}
`;
