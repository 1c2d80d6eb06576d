package diag

import "encoding/json"

// Encode encodes messages, or values that contain them, for traces and snapshots, as JSON. It returns nil if there
// are none.
func Encode[M any](l []M) []byte {
	if len(l) == 0 {
		return nil
	}
	b, err := json.Marshal(l)
	if err != nil {
		return nil // strings and numbers always marshal
	}
	return b
}

// Decode is the reverse of Encode. It returns nil if the text is damaged.
func Decode[M any](b []byte) []M {
	var l []M
	if len(b) == 0 || json.Unmarshal(b, &l) != nil {
		return nil
	}
	return l
}
