// Worker is Buildbarn's bb_worker, limited to folders of actions on disk: bb_worker itself needs a patched go-fuse,
// which only Bazel provides. It reads the same configuration file, and uses the parts that it needs.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"sync/atomic"

	re_blobstore "github.com/buildbarn/bb-remote-execution/pkg/blobstore"
	"github.com/buildbarn/bb-remote-execution/pkg/builder"
	"github.com/buildbarn/bb-remote-execution/pkg/cas"
	"github.com/buildbarn/bb-remote-execution/pkg/cleaner"
	"github.com/buildbarn/bb-remote-execution/pkg/filesystem/pool"
	"github.com/buildbarn/bb-remote-execution/pkg/proto/configuration/bb_worker"
	"github.com/buildbarn/bb-remote-execution/pkg/proto/remoteworker"
	runner_pb "github.com/buildbarn/bb-remote-execution/pkg/proto/runner"
	blobstore_configuration "github.com/buildbarn/bb-storage/pkg/blobstore/configuration"
	"github.com/buildbarn/bb-storage/pkg/clock"
	"github.com/buildbarn/bb-storage/pkg/digest"
	"github.com/buildbarn/bb-storage/pkg/eviction"
	"github.com/buildbarn/bb-storage/pkg/filesystem"
	"github.com/buildbarn/bb-storage/pkg/filesystem/path"
	"github.com/buildbarn/bb-storage/pkg/global"
	"github.com/buildbarn/bb-storage/pkg/program"
	"github.com/buildbarn/bb-storage/pkg/util"
	"github.com/buildbarn/bb-storage/pkg/zstd"
	"golang.org/x/sync/semaphore"
)

func main() {
	program.RunMain(func(ctx context.Context, siblings, dependencies program.Group) error {
		var c bb_worker.ApplicationConfiguration
		if err := util.UnmarshalConfigurationFromFile(os.Args[1], &c); err != nil {
			return err
		}
		browser, err := url.Parse(c.BrowserUrl)
		if err != nil {
			return err
		}
		lifecycle, clients, err := global.ApplyConfiguration(c.Global, dependencies)
		if err != nil {
			return err
		}
		scheduler, err := clients.NewClientFromConfiguration(c.Scheduler, dependencies)
		if err != nil {
			return err
		}
		store, results, err := blobstore_configuration.NewCASAndACBlobAccessFromConfiguration(
			dependencies, c.Blobstore, clients, int(c.MaximumMessageSizeBytes), zstd.NewPoolFromConfiguration(c.ZstdPool))
		if err != nil {
			return err
		}
		store = re_blobstore.NewExistencePreconditionBlobAccess(store)
		folders, err := cas.NewCachingDirectoryFetcherFromConfiguration(
			c.DirectoryCache, cas.NewBlobAccessDirectoryFetcher(store, int(c.MaximumMessageSizeBytes), 0))
		if err != nil {
			return err
		}
		for _, b := range c.BuildDirectories {
			native := b.GetNative()
			dir, err := filesystem.NewLocalDirectory(path.LocalFormat.NewParser(native.GetBuildDirectoryPath()))
			if err != nil {
				return err
			}
			cache, err := filesystem.NewLocalDirectory(path.LocalFormat.NewParser(native.GetCacheDirectoryPath()))
			if err != nil {
				return err
			}
			if err := cache.RemoveAllChildren(); err != nil {
				return err
			}
			evicted, err := eviction.NewSetFromConfiguration[string](native.GetCacheReplacementPolicy())
			if err != nil {
				return err
			}
			files := cas.NewHardlinkingFileFetcher(cas.NewBlobAccessFileFetcher(store), cache,
				int(native.GetMaximumCacheFileCount()), native.GetMaximumCacheSizeBytes(), eviction.NewMetricsSet(evicted, "HardlinkingFileFetcher"))
			idle := cleaner.NewIdleInvoker(cleaner.NewDirectoryCleaner(dir, native.GetBuildDirectoryPath()))
			var number atomic.Uint64
			for _, r := range b.Runners {
				runner, err := clients.NewClientFromConfiguration(r.Endpoint, dependencies)
				if err != nil {
					return err
				}
				for thread := range r.Concurrency {
					writer, flush := re_blobstore.NewBatchedStoreBlobAccess(
						store, digest.KeyWithoutInstance, 100, semaphore.NewWeighted(c.OutputUploadConcurrency))
					creator := builder.NewSharedBuildDirectoryCreator(builder.NewCleanBuildDirectoryCreator(
						builder.NewRootBuildDirectoryCreator(builder.NewNaiveBuildDirectory(
							dir, folders, files, semaphore.NewWeighted(c.InputDownloadConcurrency), writer)), idle), &number)
					id := map[string]string{"thread": fmt.Sprint(thread)}
					for k, v := range r.WorkerId {
						id[k] = v
					}
					name, err := json.Marshal(id)
					if err != nil {
						return err
					}
					executor := builder.NewLocalBuildExecutor(writer, creator, runner_pb.NewRunnerClient(runner), clock.SystemClock, 0,
						nil, int(c.MaximumMessageSizeBytes), r.EnvironmentVariables, false, false)
					executor = builder.NewTimestampedBuildExecutor(
						builder.NewStorageFlushingBuildExecutor(executor, flush), clock.SystemClock, string(name))
					executor = builder.NewCachingBuildExecutor(executor, store, results, browser)
					prefix, err := digest.NewInstanceName(r.InstanceNamePrefix)
					if err != nil {
						return err
					}
					builder.LaunchWorkerThread(siblings, builder.NewBuildClient(remoteworker.NewOperationQueueClient(scheduler),
						executor, pool.EmptyFilePool, clock.SystemClock, id, prefix, r.Platform, r.SizeClass), string(name))
				}
			}
		}
		lifecycle.MarkReadyAndWait(siblings)
		return nil
	})
}
