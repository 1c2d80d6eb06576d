package contentdb

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/kiln-pipeline/kiln/internal/base/thorough"
)

// BenchmarkQuestions asks each named question of 100,000 assets on two platforms, as a command does: the file is opened, asked and
// closed. It prints the quickest of five times, in milliseconds of one processor, for the first thousand rows, which is what `kiln
// query` shows, and for all; and first of all what it takes to open and close the file. Each answer is compared with that of the model.
func BenchmarkQuestions(b *testing.B) {
	runtime.LockOSThread() // SQLite runs on the thread that asks
	defer runtime.UnlockOSThread()
	p := large(100_000)
	m, path := newModel(p), p.database(b)
	ask := func(f func(r *Reader) (int, error)) (quickest time.Duration, rows int) {
		quickest = time.Hour
		for range 5 {
			start := thorough.CPU()
			r, err := OpenReadOnly(path)
			if err == nil {
				rows, err = f(r)
				r.Close()
			}
			if err != nil {
				b.Fatal(err)
			}
			quickest = min(quickest, thorough.CPU()-start)
		}
		return quickest, rows
	}
	for b.Loop() {
		floor, _ := ask(func(*Reader) (int, error) { return 0, nil })
		fmt.Printf("| open and close | %.1f | | | |\n", ms(floor))
		for _, q := range Queries() {
			for _, arg := range p.asked()[q.kind()] {
				run := func(limit int) (time.Duration, int) {
					return ask(func(r *Reader) (int, error) {
						res, err := r.Run(context.Background(), q.Name, []string{arg}[:len(q.Args)], limit)
						if err != nil {
							return 0, err
						}
						return len(res.Rows), nil
					})
				}
				first, _ := run(1000)
				all, rows := run(0)
				fmt.Printf("| `%s` | %.1f | %.1f | %d | %s |\n", q.Name, ms(first), ms(all), rows, arg)
			}
		}
	}
	r := reader(b, path)
	for _, q := range Queries() {
		for _, arg := range p.asked()[q.kind()] {
			m.check(b, r, q.Name, arg)
		}
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
