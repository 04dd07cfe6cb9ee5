// The log alert rules: one for each file of observability/azure/alerts. Each query returns only rows that need an alert, so one row
// is enough; the thresholds are in the queries. Each rule has one alert for each app.
//
// A rule has no identity: it reads the workspace with the rights that its deployer had at the deployment, and needs no role.
param location string
param tags object
param token string
param workspaceId string
param peopleId string

var recovery = 'https://github.com/vibedata/roundhouse/blob/main/docs/recovery.md'

// Rules for lasting causes run every 5 or 15 minutes, and their alerts clear when the cause is over. The rules for takeovers and
// metrics run every half hour. A dead letter waits for an operator regardless of its age: its alert does not clear, the rule reads
// each log line once, and sends one mail for each quarter of an hour with a dead letter.
var rules = [
  {
    name: 'invocations-failing'
    title: 'Invocations fail'
    severity: 2
    frequency: 'PT5M'
    window: 'PT15M'
    looksBack: null
    clears: true
    runbook: 'invocations-fail'
    query: loadTextContent('observability/azure/alerts/invocations-failing.kql')
  }
  {
    name: 'nothing-invoked'
    title: 'Nothing is invoked'
    severity: 1
    frequency: 'PT15M'
    window: 'PT30M'
    looksBack: 'P2D'
    clears: true
    runbook: 'nothing-is-invoked'
    query: loadTextContent('observability/azure/alerts/nothing-invoked.kql')
  }
  {
    name: 'handler-not-starting'
    title: 'The handler does not start'
    severity: 1
    frequency: 'PT5M'
    window: 'PT15M'
    looksBack: null
    clears: true
    runbook: 'the-handler-does-not-start'
    query: loadTextContent('observability/azure/alerts/handler-not-starting.kql')
  }
  {
    name: 'storage-not-prepared'
    title: 'Storage is not prepared'
    severity: 1
    frequency: 'PT5M'
    window: 'PT15M'
    looksBack: null
    clears: true
    runbook: 'storage-is-not-prepared'
    query: loadTextContent('observability/azure/alerts/storage-not-prepared.kql')
  }
  {
    name: 'storage-away'
    title: 'Storage does not answer'
    severity: 2
    frequency: 'PT5M'
    window: 'PT15M'
    looksBack: 'PT6H'
    clears: true
    runbook: 'storage-does-not-answer'
    query: loadTextContent('observability/azure/alerts/storage-away.kql')
  }
  {
    name: 'nodes-taken-over'
    title: 'Processes are taken over from'
    severity: 3
    frequency: 'PT30M'
    window: 'PT1H'
    looksBack: null
    clears: true
    runbook: 'processes-are-taken-over-from'
    query: loadTextContent('observability/azure/alerts/nodes-taken-over.kql')
  }
  {
    name: 'dead-letters'
    title: 'There are new dead letters'
    severity: 2
    frequency: 'PT15M'
    window: 'PT15M'
    looksBack: null
    clears: false
    runbook: 'there-are-new-dead-letters'
    query: loadTextContent('observability/azure/alerts/dead-letters.kql')
  }
  {
    name: 'access-refused'
    title: 'The app is refused access'
    severity: 2
    frequency: 'PT15M'
    window: 'PT30M'
    looksBack: null
    clears: true
    runbook: 'the-app-is-refused-access'
    query: loadTextContent('observability/azure/alerts/access-refused.kql')
  }
  {
    name: 'metrics-not-sent'
    title: 'Metrics are not sent'
    severity: 3
    frequency: 'PT30M'
    window: 'PT1H'
    looksBack: null
    clears: true
    runbook: 'metrics-are-not-sent'
    query: loadTextContent('observability/azure/alerts/metrics-not-sent.kql')
  }
]

resource alerts 'Microsoft.Insights/scheduledQueryRules@2023-12-01' = [for rule in rules: {
  name: '${rule.name}-${token}'
  location: location
  tags: tags
  kind: 'LogAlert'
  properties: {
    displayName: 'Roundhouse: ${rule.title}'
    description: '${rule.title}. What to do: ${recovery}#${rule.runbook}'
    severity: rule.severity
    enabled: true
    scopes: [workspaceId]
    evaluationFrequency: rule.frequency
    windowSize: rule.window
    overrideQueryTimeRange: rule.looksBack
    autoMitigate: rule.clears
    skipQueryValidation: true // in a new workspace a table may not exist before its first row
    criteria: {
      allOf: [
        {
          query: rule.query
          timeAggregation: 'Count'
          operator: 'GreaterThan'
          threshold: 0
          dimensions: [{ name: 'app', operator: 'Include', values: ['*'] }]
          failingPeriods: { numberOfEvaluationPeriods: 1, minFailingPeriodsToAlert: 1 }
        }
      ]
    }
    actions: { actionGroups: [peopleId] }
  }
}]
