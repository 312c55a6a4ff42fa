/** The definitions that the tests run. */

export const GREETING = `
name: greeting
description: Greets someone.
inputSchema:
  type: object
  properties:
    name: {type: string, default: world, description: Who is greeted.}
    times: {type: integer, default: 1, minimum: 1}
    loud: {type: boolean}
  required: [name]
steps:
  - id: greet
    type: code
    input: {name: "@input.name"}
    code: |
      export default ({ name }) => "Hello " + name
output: "@greet"
`;

export const APPROVAL = `
name: transfer
steps:
  - id: ask
    type: approval
    prompt: "Transfer to @input.to?"
    items:
      - {account: "@input.to", amount: 1200}
      - {account: fees, amount: 3}
  - id: done
    type: code
    code: export default () => "sent"
`;

export const LOOP = `
name: loop
steps:
  - id: each
    type: loop
    forEach: {ref: "@input.list"}
    steps:
      - id: square
        type: code
        input: {n: "@item"}
        code: export default ({ n }) => { if (n === 3) throw new Error("three is refused"); return n * n }
        onError: continue
  - id: end
    type: code
    when: {ref: "@input.never"}
    code: export default () => 1
`;

export const SIGNAL = `
name: waits
steps:
  - id: first
    type: code
    code: export default () => 1
  - id: wait
    type: signal
    signal: go
  - id: last
    type: code
    input: {got: "@wait"}
    code: export default ({ got }) => got
`;

export const PARENT = `
name: parent
steps:
  - id: child
    type: subworkflow
    workflow: transfer
    input: {to: child}
`;

export const FAILING = `
name: failing
steps:
  - id: fine
    type: code
    code: export default () => 1
  - id: broken
    type: code
    code: export default () => { console.log("about to fail"); throw new Error("the reason of the failure") }
    retry: {maxAttempts: 1}
`;
