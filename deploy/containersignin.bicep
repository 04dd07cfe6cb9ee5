// Users sign in to a container app with Microsoft Entra ID. The platform then removes identity headers that clients send.
param name string
param clientId string
param required bool
param tenantId string

resource app 'Microsoft.App/containerApps@2024-03-01' existing = {
  name: name
}

resource authentication 'Microsoft.App/containerApps/authConfigs@2024-03-01' = {
  parent: app
  name: 'current'
  properties: {
    platform: { enabled: true }
    globalValidation: {
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
  }
}
