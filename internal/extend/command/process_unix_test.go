//go:build unix

package command

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/kiln-pipeline/kiln/internal/base/diag"
	"github.com/kiln-pipeline/kiln/processor/processortest"
)

func TestProcessThatLeftTheGroupHoldsNobodyUp(t *testing.T) {
	address, next := listener(t)
	p := mustNew(t, helperConfig("escape", address, "{out}", "{in}"))
	done := make(chan error, 1)
	go func() { done <- processortest.Run(t, p, helperCase(t)).Err }()
	one, two := next(), next()
	child, parent := one, two
	if one.says == "waits" {
		child, parent = two, one
	}
	parent.Close()
	if err := <-done; err != nil { // it comes although the child holds the pipes
		t.Error(err)
	}
	if err := child.Conn.(*net.TCPConn).CloseWrite(); err != nil { // and ends with this
		t.Error(err)
	}
	child.gone(t)
}

func TestOutputIsAPipe(t *testing.T) {
	p := only(t, runHelper(t, helperConfig("pipe", "{out}", "{in}")).Err, diag.CommandOutputKind)
	if want := "helper wrote no file for {out}: it is neither a file nor a folder"; p.Text != want {
		t.Errorf("%q, want %q", p.Text, want)
	}
}

func TestSignal(t *testing.T) {
	p := only(t, runHelper(t, helperConfig("suicide", "{in}", "{out}")).Err, diag.CommandFailed)
	if !strings.HasPrefix(p.Text, "helper was ended by signal: killed\n") || !errors.Is(p, diag.ErrMoment) {
		t.Errorf("%+v", p)
	}
}
