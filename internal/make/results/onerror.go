package results

// OnError says what to ship for an asset that fails. Each keeps what the one before it does.
type OnError uint8

const (
	Fail               OnError = iota // it has no products
	LastGood                          // its last good products stay
	Placeholders                      // placeholders stand for it, where there are some, in the output folder and for running games; parcels stay as they are
	PackedPlaceholders                // in parcels as well
	OnErrors
)

// String is what a snapshot's signature has of it.
func (o OnError) String() string {
	return [OnErrors]string{"fail", "last-good", "placeholder", "placeholder in parcels"}[o]
}
