// An app on Azure Container Apps: the image of the repository's Dockerfile, which scales with the
// load. One instance is always there, because nothing else would look at queues and timers.
param location string
param tags object
param name string
param identityId string
param environmentId string
param domain string
param registry string
param settings object
param maximumInstances int
param image string
param signIn bool

var url = 'https://${name}.${domain}'
var own = union({ ROUNDHOUSE_PUBLIC_URL: url }, signIn ? { WEBSITE_AUTH_ENABLED: 'true' } : {})
var env = [for setting in items(union(settings, own)): { name: setting.key, value: setting.value }]

resource app 'Microsoft.App/containerApps@2024-03-01' = {
  name: name
  location: location
  tags: tags
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: { '${identityId}': {} }
  }
  properties: {
    environmentId: environmentId
    workloadProfileName: 'Consumption'
    configuration: {
      activeRevisionsMode: 'Single'
      registries: [{ server: registry, identity: identityId }]
      ingress: {
        external: true
        targetPort: 8080
        transport: 'http'
        allowInsecure: false
      }
    }
    template: {
      // As long as an invocation may take, so that a replica that goes can park what it runs.
      terminationGracePeriodSeconds: 600
      containers: [
        {
          name: 'app'
          image: empty(image) ? 'mcr.microsoft.com/azure-functions/dotnet:4' : image
          resources: { cpu: 1, memory: '2Gi' }
          env: env
          probes: [
            { type: 'Liveness', httpGet: { path: '/api/health/live', port: 8080 }, initialDelaySeconds: 30, periodSeconds: 30 }
            { type: 'Readiness', httpGet: { path: '/api/health/ready', port: 8080 }, periodSeconds: 10 }
          ]
        }
      ]
      scale: {
        minReplicas: 1
        maxReplicas: maximumInstances
        rules: [{ name: 'cpu', custom: { type: 'cpu', metadata: { type: 'Utilization', value: '70' } } }]
      }
    }
  }
}

output url string = url
