package schema_test

import "testing"

// TestNamesAsWritten refers to keys and files by names that would be escaped in a URI.
func TestNamesAsWritten(t *testing.T) {
	for _, ref := range []string{"#/$defs/größe m", "#/$defs/gr%C3%B6%C3%9Fe%20m"} {
		s, err := oursCompile(files{"main.json": []byte(`{"$ref": "` + ref + `", "$defs": {"größe m": {"type": "null"}}}`)})
		if err != nil {
			t.Errorf("%s: %v", ref, err)
			continue
		}
		if _, err := s.Validate(parse(t, []byte("1"))); err == nil {
			t.Errorf("%s leads elsewhere", ref)
		}
	}
	if _, err := oursCompile(files{"main.json": []byte(`{"$ref": "Waffen und Rüstung.json#/x"}`), "Waffen und Rüstung.json": []byte(`{"x": {}}`)}); err != nil {
		t.Error(err)
	}
}
