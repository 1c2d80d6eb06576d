package kiln

import "embed"

// source is Kiln's own: what a program in Go that imports this package is compiled of, and nothing that only tests need. `kiln new` lays it
// beside processors in Go, so that they can be compiled with nothing but Kiln and Go. The patterns are for all names but those that end in
// _test.
//
//go:embed go.mod go.sum LICENSE
//go:embed *[^t].go
//go:embed internal/*/*[^t].go internal/*/*[^s]t.go
//go:embed internal/*/*/*[^t].go internal/*/*/*[^s]t.go internal/*/*/*[^e]st.go internal/*/*/*[^t]est.go
//go:embed internal/*/*/*/*[^t].go internal/*/*/*/*[^s]t.go internal/*/*/*/*[^_]test.go
//go:embed internal/media/*/*.s internal/media/codec/*/*.s
//go:embed processor/*[^t].go
//go:embed processor/*/*[^t].go processor/*/*[^e]st.go processor/*/*[^t]est.go processor/*/*[^_]test.go
//go:embed kilnrt/*[^t].go kilnrt/*[^s]t.go
//go:embed internal/delivery/codegen/templates internal/store/contentdb/*.sql internal/running/dashboard/pages/*.html internal/running/dashboard/static internal/ask/skeleton/files internal/media/placeholder/silence.* processor/wasmguest/c/kiln_guest.h internal/cli/test.go
//go:embed docs/messages.md
var source embed.FS
