package c_test

import (
	"encoding/binary"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zeebo/blake3"
)

// Steps of testdata/fuzz_live.c.
const (
	stepPoll = iota
	stepMessage
	stepFrame
	stepTalk
	stepFetch
	stepAccept
	stepAnswer
	stepUse
	stepUseName
	stepUnuse
	stepEnd
	stepTime
	stepMood
	stepFind
	stepWait
	stepTurn
)

// said returns a step for each of the texts.
func said(step byte, texts ...string) []byte {
	var b []byte
	for _, s := range texts {
		b = append(binary.BigEndian.AppendUint16(append(b, step), uint16(len(s))), s...)
	}
	return b
}

func steps(parts ...[]byte) []byte {
	var b []byte
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// resource returns a resource for a message.
func resource(id int, name, content, more string) string {
	return fmt.Sprintf(`{"id":%d,"uuid":"%032x","sub":%d,"name":%q,"asset":%q,"kind":"data","hash":"%x","size":%d%s}`,
		id, id+1, id%2, name, name, blake3.Sum256([]byte(content)), len(content), more)
}

// TestFuzzLive runs clang's fuzzer for a short time on the live client, its network, and messages of a watcher.
func TestFuzzLive(t *testing.T) {
	const welcome = `{"type":"welcome","version":1,"project":"p","platform":"pc","epoch":"e","seq":3,"resumed":false,"resources":3}`
	list := `{"type":"list","seq":3,"resources":[` + resource(0, "a", "A", "") + "," + resource(1, "b", "B", `,"needs":[0],"uses":[9,2]`) + `],"more":true}`
	rest := `{"seq":3,"resources":[` + resource(2, `über/\"x\" \ud83d\ude00`, "", `,"needs":[1]`) + `],"type":"list","other":{"x":[1,{"y":null}]}}`
	changed := `{"type":"changed","seq":4,"resources":[` + resource(0, "a", "content", "") + `],"removed":[1],"order":[0,1]}`
	other := strings.NewReplacer(`"epoch":"e"`, `"epoch":"f"`, "}", `,"beat":100}`).Replace(welcome)
	failed := `{"type":"failed","seq":4,"asset":"a","messages":[{"severity":"error","code":"K1","file":"a","line":3,"column":1,` +
		`"text":"x","hint":"y","more":["z"]},{}],"resources":[0]}`
	turns := []byte{stepTurn, stepTurn, stepTurn, stepTurn, stepTurn, stepTurn}
	begin := steps(said(stepFrame, welcome, list), said(stepMessage, rest), []byte{stepUse, 2, stepUse, 0}, said(stepUseName, "late"), turns)
	again := []byte{stepEnd, 0, stepTurn, stepTime, 60, stepTurn, stepTurn} // another connection
	fuzz(t, "fuzz_live", 4096, map[string][]byte{
		"list":    begin,
		"changed": steps(begin, said(stepMessage, changed), turns, said(stepMessage, `{"type":"reload"}`, `{"type":"reload","ids":[0,7]}`), turns, []byte{stepUnuse, 0, stepUnuse, 2}, turns),
		"told": steps(begin, said(stepMessage, failed, `{"type":"mended","seq":5,"asset":"a"}`,
			`{"type":"reply","request":1,"ids":[1]}`, `{"type":"reply","request":1,"reason":"no \u00e9 \n"}`, `{"type":"new"}`, `{"type":"refused","reason":"enough"}`), turns),
		"again":   steps(begin, []byte{stepEnd, 0, stepTurn, stepTime, 60, stepTurn, stepTurn, stepTurn}, said(stepFrame, strings.Replace(welcome, "false", "true", 1), changed), turns),
		"pieces":  steps([]byte{stepMood, 3 << 3}, said(stepTalk, "\x89\x03abc", "\x01\x05{\"typ", "\x80\x0ee\":\"welcome\"} ", "\x88\x00"), turns, turns),
		"moods":   steps(begin, []byte{stepMood, 1}, said(stepMessage, changed), turns, []byte{stepMood, 2}, turns, []byte{stepMood, 4, stepEnd, 1, stepEnd, 0}, turns, []byte{stepTime, 255}, turns),
		"answers": steps(said(stepMessage, welcome, list, rest), []byte{stepUse, 0, stepPoll, stepPoll}, said(stepFetch, "HTTP/1.1 200 OK\r\nContent-Le", "ngth: 1\r\nConnection: close\r\n\r\nX"), []byte{stepPoll, stepPoll}, turns),
		"restarted": steps(begin, again, said(stepFrame, other, strings.ReplaceAll(list, `"needs":[0],`, ""), `{"type":"list","seq":3}`), turns,
			[]byte{stepUnuse, 2}, turns, said(stepMessage, `{"type":"alive"}`), []byte{stepTime, 255, stepWait, 0}, turns),
		"half a list": steps(begin, again, said(stepFrame, other, list), again, said(stepFrame, welcome, list, rest), turns),
		"find":        steps(begin, said(stepFind, "a", "", "b"), []byte{stepWait}),
		"closed":      steps([]byte{stepWait, 1}, begin), "closed in load": steps([]byte{stepWait, 2}, begin, turns), "closed in another load": steps([]byte{stepWait, 3}, begin, turns),
		"closed while told": steps(begin, []byte{stepWait, 1}, said(stepFrame, `{"type":"failed","seq":4,"asset":"a"}`, `{"type":"mended","seq":4,"asset":"a"}`), turns),
		"closed when gone":  steps(begin, []byte{stepWait, 1, stepEnd, 0}, turns),
	})
}

// TestLiveCompiles compiles the client in the languages of games, and for Windows.
func TestLiveCompiles(t *testing.T) {
	source := "#define KILN_IMPLEMENTATION\n#define KILN_LIVE_IMPLEMENTATION\n#include \"kiln.h\"\nint main(void) { return kiln_live_open(NULL) != NULL; }\n"
	for _, c := range []struct{ compiler, language, std string }{
		{"gcc", "c", "c99"}, {"gcc", "c", "gnu11"}, {"clang", "c", "c99"}, {"g++", "c++", "c++17"}, {"clang++", "c++", "c++17"}, {"x86_64-w64-mingw32-gcc", "c", "c99"}, {"x86_64-w64-mingw32-g++", "c++", "c++17"},
	} {
		t.Run(c.compiler+"/"+c.std, func(t *testing.T) {
			if _, err := exec.LookPath(c.compiler); err != nil {
				t.Skipf("there is no %s", c.compiler)
			}
			cmd := exec.Command(c.compiler, "-std="+c.std, "-pedantic", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror", "-Wno-unused-function", "-I.", "-x", c.language, "-c", "-", "-o", filepath.Join(t.TempDir(), "o"))
			cmd.Stdin = strings.NewReader(source)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
