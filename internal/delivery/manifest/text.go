package manifest

import (
	"encoding/hex"

	"github.com/google/uuid"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

func uuidText(u UUID) string { return uuid.UUID(u).String() }

// shortHash is twelve digits of a text's hash: of 10,000 texts two have the same with a probability of 2e-7.
func shortHash(s string) string {
	h := digest.Of([]byte(s))
	return hex.EncodeToString(h[:6])
}
