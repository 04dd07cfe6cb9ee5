// Logs and metrics of the apps, and a workbook that shows them. Telemetry is taken from identities alone: there is no key that could leak.
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

// The workbook asks what the files of observability/azure/queries ask.
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
