package disk

// BootID is another text after each start of the system, and the same until then: what was written before a start and not synced may be
// gone after it. It is "" where the system does not tell; then nobody knows whether there was one. A variable, so that tests start the
// system anew.
var BootID = bootID
