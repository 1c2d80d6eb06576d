package settings

import "testing"

// TestMerge: a later table wins key by key, in tables within tables too, and neither is changed.
func TestMerge(t *testing.T) {
	for _, c := range []struct{ under, over, want string }{
		{`{}`, `{}`, `{}`},
		{`{"a":1,"b":2}`, `{"b":3,"c":4}`, `{"a":1,"b":3,"c":4}`},
		{`{"t":{"x":1,"y":{"z":2}}}`, `{"t":{"y":{"w":3}}}`, `{"t":{"x":1,"y":{"w":3,"z":2}}}`},
		{`{"t":{"x":1},"l":[1,2]}`, `{"t":5,"l":[3]}`, `{"l":[3],"t":5}`},
		{`{"t":5}`, `{"t":{"x":1}}`, `{"t":{"x":1}}`},
	} {
		under, err := FromJSON([]byte(c.under))
		over, err2 := FromJSON([]byte(c.over))
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		if got := Merge(under, over).JSON(); got != c.want || under.JSON() != normal(t, c.under) || over.JSON() != normal(t, c.over) {
			t.Errorf("%s under %s is %s, want %s; they became %s, %s", c.under, c.over, got, c.want, under.JSON(), over.JSON())
		}
		if Merge(nil, over) != over || Merge(under, nil) != under {
			t.Error("nothing laid over a table changes it")
		}
	}
}

// normal is the text that a table of this text has.
func normal(t *testing.T, text string) string {
	table, err := FromJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return table.JSON()
}
