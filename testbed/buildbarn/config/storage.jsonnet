// bb_storage: contents, results, and the address for kiln. It passes actions to the scheduler. Everything is in memory: at most 1.7 GB of
// contents. STORAGE and SCHEDULER are addresses, HOST:PORT.
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
