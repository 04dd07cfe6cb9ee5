// Access to a Function App: deployment passwords are disabled, and users sign in with Microsoft Entra ID if there is an application
// registration.
param name string
param workspaceId string
param clientId string
param required bool
param tenantId string

resource app 'Microsoft.Web/sites@2023-12-01' existing = {
  name: name
}

resource ftpPasswords 'Microsoft.Web/sites/basicPublishingCredentialsPolicies@2023-12-01' = {
  parent: app
  name: 'ftp'
  properties: { allow: false }
}

resource scmPasswords 'Microsoft.Web/sites/basicPublishingCredentialsPolicies@2023-12-01' = {
  parent: app
  name: 'scm'
  properties: { allow: false }
}

resource authentication 'Microsoft.Web/sites/config@2023-12-01' = if (!empty(clientId)) {
  parent: app
  name: 'authsettingsV2'
  properties: {
    platform: { enabled: true }
    globalValidation: {
      requireAuthentication: required
      unauthenticatedClientAction: required ? 'Return401' : 'AllowAnonymous'
      excludedPaths: required ? loadJsonContent('open-paths.json') : []
    }
    identityProviders: {
      azureActiveDirectory: {
        enabled: true
        registration: {
          clientId: clientId
          openIdIssuer: '${environment().authentication.loginEndpoint}${tenantId}/v2.0'
        }
        validation: { allowedAudiences: ['api://${clientId}'] }
      }
    }
    login: { tokenStore: { enabled: false } }
  }
}

resource metrics 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  name: 'metrics'
  scope: app
  properties: {
    workspaceId: workspaceId
    metrics: [{ category: 'AllMetrics', enabled: true }]
  }
}
