package schema

import "testing"

// formatCases has accepted and refused texts for each format.
var formatCases = []struct {
	name   string
	takes  []string
	others []string
}{
	{"date",
		[]string{"2026-11-21", "0000-01-01", "9999-12-31", "2024-02-29", "2000-02-29", "2026-04-30"},
		[]string{"", "2026-11-2", "2026-11-211", "2026-1-21", "26-11-21", "2026-00-10", "2026-13-10", "2026-11-00", "2026-11-31", "2026-01-32",
			"2025-02-29", "1900-02-29", "2026-02-30", "2026/11/21", "20261121", "2026-325", "2026-W47-6", "+2026-11-21", "2026-11-2١", "2026-11-21\n"}},
	{"time",
		[]string{"00:00:00Z", "23:59:59z", "12:30:15.1Z", "12:30:15.123456789012-00:00", "12:30:15+05:30"},
		[]string{"", "12:30:15", "12:30Z", "24:00:00Z", "12:60:15Z", "12:30:61Z", "23:59:60Z", "12:30:15.Z", "12:30:15,5Z", "1:30:15Z",
			"12:30:15+5:30", "12:30:15+0530", "12:30:15+05", "12:30:15Z+05:30", "12:30:15 Z", "+1:30:15Z", "12-30-15Z", "12:30:15Zz"}},
	{"date-time",
		[]string{"2026-11-21T12:30:15Z", "2026-11-21t12:30:15.5+01:00"},
		[]string{"", "2026-11-21", "2026-11-21 12:30:15Z", "2026-11-21T12:30:15", "2026-11-31T12:30:15Z", "2026-11-21TT12:30:15Z", "2026-11-21T", "T12:30:15Z"}},
	{"email",
		[]string{"a@b", "first.last@example.com", "!#$%&'*+-/=?^_`{|}~@example.com", "a@[127.0.0.1]", "a@127.0.0.1", "ö@b"},
		[]string{"", "@", "a", "a@", "@b", ".a@b", "a.@b", "a..b@c", "a b@c", "a@b@c", `"a"b"@c`, `"a@b`, `"@b`, "a@b.", "a@.b", "a@[", "a@[]",
			"a@127.0.0.1]", "a@[127.0.0.1", "a@[x:y]", "a,b@c", "a(b)@c", "<a@b>", "A <a@b>", " a@b"}},
	{"uri",
		[]string{"http://a", "http://a/b/c?d=e/?#f/?", "a:", "a:b", "a:/", "a:/b", "a:b:c", "a+-.1:b", "mailto:a@b.c", "urn:a:b", "file:///a",
			"http://u:p@h:80/", "http://[::1]:80/", "http://", "http://a//b", "http://a/%c3%bc", "a:?#", "a://b?c?d", "a:b@c:d"},
		[]string{"", "a", "/a", "//a", "#a", "?a", "1a:b", "-a:b", "a_b:c", ":a", "é:a", "http://a b", "http://a/ b", "http://a/\\b",
			"http://a/<b>", "http://a/\"b\"", "http://a/{b}", "http://a/b^", "http://a/`", "http://a/|", "http://a/é", "http://a/%", "http://a/%4",
			"http://a/%4g", "http://a:b", "http://[::1", "http://::1]", "http://[::1]a", "a:b\x00", "a:b\x7f", "http://a/\xff"}},
	{"uri-reference",
		[]string{"", "a", "/", "/a", "//a/b", "#a", "?a", "#", "a/b:c", "./a:b", "../a", "a?b:c", "http://a", "a%20b", "a;b=c,d"},
		[]string{"1:a", "a b", "\\a", "é", "#é", "%zz", "//a:b", "{a}", "a|b", ":a"}},
	{"uuid",
		[]string{"123e4567-e89b-12d3-a456-426614174000", "00000000-0000-0000-0000-000000000000", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF"},
		[]string{"", "123e4567e89b12d3a456426614174000", "123e4567-e89b-12d3-a456-42661417400", "123e4567-e89b-12d3-a456-4266141740000",
			"123e4567-e89b-12d3-a456-42661417400g", "{123e4567-e89b-12d3-a456-426614174000}", "123e456-7e89b-12d3-a456-426614174000",
			"123e4567-e89b-12d3-a456-4266141740é"}},
	{"regex",
		[]string{"", "a", "^[a-z]+$", `\d{2,3}`, `\p{L}`, "(?i)a"},
		[]string{"(", "[", "a**", "(?=a)", `(a)\1`, `\`, "a{2,1}", "a{1001}", "\xff"}},
}

func TestFormats(t *testing.T) {
	for _, c := range formatCases {
		holds := formatOf(c.name)
		if holds == nil {
			t.Errorf("%s is not known", c.name)
			continue
		}
		for _, s := range c.takes {
			if !holds(s) {
				t.Errorf("%s refuses %q", c.name, s)
			}
		}
		for _, s := range c.others {
			if holds(s) {
				t.Errorf("%s takes %q", c.name, s)
			}
		}
	}
	for _, name := range []string{"", "color", "Date", "hostname", "semver"} {
		if formatOf(name) != nil {
			t.Errorf("%q is known", name)
		}
	}
}
