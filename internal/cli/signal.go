package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// untilSignal cancels the context at the first interrupt. The second one ends the process, which is safe, because
// files on disk are valid at any moment.
func untilSignal(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	c := make(chan os.Signal, 2)
	done := make(chan struct{})
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	go func() {
		for n := 1; ; n++ {
			select {
			case <-done:
				return
			case <-c:
				if n > 1 {
					os.Exit(int(exitInterrupted))
				}
				cancel()
			}
		}
	}()
	return ctx, func() {
		signal.Stop(c)
		close(done)
		cancel()
	}
}
