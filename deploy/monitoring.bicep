// Logs and metrics of the apps, and a workbook that shows them. Telemetry is accepted only from identities, so no key can leak.
param location string
param tags object
param token string

resource workspace 'Microsoft.OperationalInsights/workspaces@2023-09-01' = {
  name: 'log-${token}'
  location: location
  tags: tags
  properties: {
    sku: { name: 'PerGB2018' }
    retentionInDays: 30
    features: { disableLocalAuth: true }
  }
}

resource component 'Microsoft.Insights/components@2020-02-02' = {
  name: 'appi-${token}'
  location: location
  tags: tags
  kind: 'web'
  properties: {
    Application_Type: 'web'
    WorkspaceResourceId: workspace.id
    DisableLocalAuth: true
  }
}

// The workbook's queries are those of the files in observability/azure/queries.
resource workbook 'Microsoft.Insights/workbooks@2023-06-01' = {
  name: guid(token, 'workbook')
  location: location
  tags: tags
  kind: 'shared'
  properties: {
    displayName: 'Roundhouse'
    category: 'workbook'
    version: 'Notebook/1.0'
    sourceId: workspace.id
    serializedData: replace(loadTextContent('observability/azure/workbook.json'), '{workspace}', workspace.id)
  }
}

output workspaceId string = workspace.id
output componentId string = component.id
output componentName string = component.name
