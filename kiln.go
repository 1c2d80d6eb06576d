// Package kiln is Kiln as a library. It builds the content of a game project, and it is how a team makes a kiln of
// its own with processors written in Go:
//
//	func main() { kiln.Main(kiln.With(tilemap.New())) }
package kiln

import (
	"context"
	"os"

	"github.com/kiln-pipeline/kiln/internal/cli"
	"github.com/kiln-pipeline/kiln/internal/processors"
	"github.com/kiln-pipeline/kiln/processor"
)

// Version of Kiln.
const Version = "0.1.0-dev"

// Option changes what a kiln is made of.
type Option func(*config)

type config struct {
	processors []processor.Processor
}

// With adds a processor to Kiln's own, or, if one of these has the same name, puts it in its place.
func With(p processor.Processor) Option {
	return func(c *config) {
		for i := range c.processors {
			if c.processors[i].Info().Name == p.Info().Name {
				c.processors[i] = p
				return
			}
		}
		c.processors = append(c.processors, p)
	}
}

func newConfig(opts []Option) cli.Config {
	c := config{processors: processors.All()}
	for _, o := range opts {
		o(&c)
	}
	return cli.Config{Processors: c.processors, Version: cli.ReadVersion(Version)}
}

// Main is the kiln command: it runs the command line of this process and ends it with the exit code.
func Main(opts ...Option) {
	os.Exit(cli.Main(context.Background(), os.Args[1:], cli.OSStreams(), newConfig(opts)))
}
