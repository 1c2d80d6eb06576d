package manifest

import (
	"encoding/hex"

	"github.com/google/uuid"

	"github.com/kiln-pipeline/kiln/internal/digest"
)

func uuidText(u UUID) string { return uuid.UUID(u).String() }

// shortHash is eight digits of a text's hash.
func shortHash(s string) string {
	h := digest.Of([]byte(s))
	return hex.EncodeToString(h[:4])
}
