// The recipient of alerts, and the alert rule without a query. The log alert rules are in logalerts.bicep.
param tags object
param token string
param email string
param componentId string

resource people 'Microsoft.Insights/actionGroups@2023-01-01' = {
  name: 'ag-${token}'
  location: 'global'
  tags: tags
  properties: {
    groupShortName: 'roundhouse'
    enabled: true
    emailReceivers: [
      {
        name: 'people'
        emailAddress: email
        useCommonAlertSchema: true
      }
    ]
  }
}

// An unusually high rate of failing requests or calls.
resource failures 'microsoft.alertsManagement/smartDetectorAlertRules@2021-04-01' = {
  name: 'failures-${token}'
  location: 'global'
  tags: tags
  properties: {
    description: 'More requests or calls of the apps fail than usual.'
    state: 'Enabled'
    severity: 'Sev3'
    frequency: 'PT1M'
    detector: { id: 'FailureAnomaliesDetector' }
    scope: [componentId]
    actionGroups: { groupIds: [people.id] }
  }
}

output peopleId string = people.id
