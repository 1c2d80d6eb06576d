// bb_worker: runs actions with a runner, SLOTS at once. DIR also has a folder cache. NAME is the name of the machine.
local storage = { grpc: { client: { address: std.extVar('STORAGE') } } };
{
  global: {},
  blobstore: { contentAddressableStorage: storage, actionCache: storage },
  maximumMessageSizeBytes: 16 * 1024 * 1024,
  scheduler: { address: std.extVar('WORKERS') },
  directoryCache: { maximumCount: 1000, maximumSizeBytes: 1024 * 1024, cacheReplacementPolicy: 'LEAST_RECENTLY_USED' },
  inputDownloadConcurrency: 10,
  outputUploadConcurrency: 10,
  buildDirectories: [{
    native: {
      buildDirectoryPath: std.extVar('DIR') + '/build',
      cacheDirectoryPath: std.extVar('DIR') + '/cache',
      maximumCacheFileCount: 10000,
      maximumCacheSizeBytes: 1024 * 1024 * 1024,
      cacheReplacementPolicy: 'LEAST_RECENTLY_USED',
    },
    runners: [{
      endpoint: { address: 'unix://' + std.extVar('DIR') + '/runner' },
      concurrency: std.parseInt(std.extVar('SLOTS')),
      platform: { properties: [{ name: 'ISA', value: std.extVar('ISA') }, { name: 'OSFamily', value: std.extVar('OSFAMILY') }] },
      workerId: { host: std.extVar('NAME') },
    }],
  }],
}
