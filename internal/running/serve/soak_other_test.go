//go:build !unix

package serve_test

import "errors"

const watcherDir = "KILN_TEST_WATCHER"

func beWatcher(string) error { return errors.New("there are no such signals") }
