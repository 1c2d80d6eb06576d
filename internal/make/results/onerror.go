package results

// OnError is what to ship for an asset that fails. Each value includes what the one before it does.
type OnError uint8

const (
	Fail     OnError = iota // no products
	LastGood                // its last good products
	// Placeholders, if there are some, in the output folder and for running games; parcels are not changed.
	Placeholders
	PackedPlaceholders // in parcels too
	OnErrors
)

// String is its text in a snapshot's signature.
func (o OnError) String() string {
	return [OnErrors]string{"fail", "last-good", "placeholder", "placeholder in parcels"}[o]
}
