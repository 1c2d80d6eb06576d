package manifest

import (
	"encoding/hex"

	"github.com/google/uuid"

	"github.com/kiln-pipeline/kiln/internal/base/digest"
)

func uuidText(u UUID) string { return uuid.UUID(u).String() }

// shortHash is twelve digits of a text's hash: the probability that two of 10,000 texts have the same is
// 2e-7.
func shortHash(s string) string {
	h := digest.Of([]byte(s))
	return hex.EncodeToString(h[:6])
}
