package build

import (
	"context"
	"fmt"
	"github.com/kiln-pipeline/kiln/internal/processors"
	"os"
	"testing"
)

func TestTry(t *testing.T) {
	p, err := Open(Config{Dir: os.Getenv("TRY"), Version: "dev", Processors: processors.All()})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Lock(context.Background(), true, func() {}); err != nil {
		t.Fatal(err)
	}
	defer p.Unlock()
	r, err := p.Build(context.Background(), Request{Reporter: silent{}})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range r.Messages {
		fmt.Println(m)
	}
	fmt.Printf("%+v\n", r.Summary)
	for _, j := range r.Jobs {
		if len(r.Jobs) < 20 {
			fmt.Println(j.Asset, j.Platform, Explain(j.Why))
		}
	}
}
