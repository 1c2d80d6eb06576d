// bb_storage: contents, results, and the address that kilns have. It hands actions on to the scheduler. All is held in memory: 1.7 GB of
// contents at most. STORAGE and SCHEDULER are addresses, HOST:PORT.
local blocks(entries, size, new) = {
  'local': {
    keyLocationMapInMemory: { entries: entries },
    keyLocationMapMaximumGetAttempts: 16,
    keyLocationMapMaximumPutAttempts: 64,
    oldBlocks: 8,
    currentBlocks: 16,
    newBlocks: new,
    blocksInMemory: { blockSizeBytes: size },
  },
};
{
  global: {},
  grpcServers: [{ listenAddresses: [std.extVar('STORAGE')], authenticationPolicy: { allow: {} } }],
  maximumMessageSizeBytes: 16 * 1024 * 1024,
  contentAddressableStorage: {
    backend: blocks(1000000, 64 * 1024 * 1024, 3),
    getAuthorizer: { allow: {} },
    putAuthorizer: { allow: {} },
    findMissingAuthorizer: { allow: {} },
  },
  actionCache: {
    backend: { completenessChecking: { backend: blocks(100000, 1024 * 1024, 1), maximumTotalTreeSizeBytes: 64 * 1024 * 1024 } },
    getAuthorizer: { allow: {} },
    putAuthorizer: { allow: {} },
  },
  schedulers: { '': { endpoint: { address: std.extVar('SCHEDULER') } } },
  executeAuthorizer: { allow: {} },
}
