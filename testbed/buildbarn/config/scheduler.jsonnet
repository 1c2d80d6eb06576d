// bb_scheduler: the queue of actions. STORAGE asks it at SCHEDULER, workers at WORKERS.
{
  global: {},
  clientGrpcServers: [{ listenAddresses: [std.extVar('SCHEDULER')], authenticationPolicy: { allow: {} } }],
  workerGrpcServers: [{ listenAddresses: [std.extVar('WORKERS')], authenticationPolicy: { allow: {} } }],
  maximumMessageSizeBytes: 16 * 1024 * 1024,
  contentAddressableStorage: { grpc: { client: { address: std.extVar('STORAGE') } } },
  executeAuthorizer: { allow: {} },
  modifyDrainsAuthorizer: { allow: {} },
  killOperationsAuthorizer: { allow: {} },
  synchronizeAuthorizer: { allow: {} },
  actionRouter: {
    simple: {
      platformKeyExtractor: { action: {} },
      invocationKeyExtractors: [{ correlatedInvocationsId: {} }],
      initialSizeClassAnalyzer: { defaultExecutionTimeout: '600s', maximumExecutionTimeout: '3600s' },
    },
  },
  platformQueueWithNoWorkersTimeout: '30s',
}
