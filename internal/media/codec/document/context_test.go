package document

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// counted is canceled after left calls of Err.
type counted struct {
	context.Context
	left int
}

var errEnough = errors.New("enough")

func (c *counted) Err() error {
	if c.left--; c.left < 0 {
		return errEnough
	}
	return nil
}

// TestContext checks that every reader stops when its context ends, also in the middle of a file.
func TestContext(t *testing.T) {
	texts := map[string]string{
		"json": "[" + strings.Repeat("1, ", 20_000) + "1]", "yaml": strings.Repeat("- 1\n", 20_000), "toml": "a = [" + strings.Repeat("1, ", 20_000) + "]",
		"csv": "a,b\n" + strings.Repeat("1,2\n", 10_000), "relaxed": "[" + strings.Repeat("1 \n", 20_000) + "]",
	}
	for format, text := range texts {
		under := func(ctx context.Context) error {
			r := Under(ctx)
			read := map[string]func([]byte) (Value, error){
				"json": r.JSON, "yaml": r.YAML, "toml": r.TOML, "relaxed": r.RelaxedJSON,
				"csv": func(d []byte) (Value, error) { return r.CSV(d, CSVOptions{}) },
			}[format]
			_, err := read([]byte(text))
			return err
		}
		if err := under(&counted{context.Background(), 1 << 30}); err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		for _, looks := range []int{0, 1, 3, 10} {
			if c := (&counted{context.Background(), looks}); under(c) == nil {
				t.Errorf("%s goes on after %d looks", format, looks)
			} else if c.left < -4 {
				t.Errorf("%s looked %d times more", format, -c.left)
			}
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errEnough)
		if err := under(ctx); !errors.Is(err, errEnough) {
			t.Errorf("%s: %v", format, err)
		}
	}
}
