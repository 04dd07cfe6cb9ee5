// An app on Azure Container Apps: it runs the image of the repository's Dockerfile and scales with the load. One replica always
// runs, because only a running replica reads queues and timers.
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
      // The longest duration of an invocation, so that a replica that stops can park its orchestrations.
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
