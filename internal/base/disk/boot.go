package disk

// BootID is a text that changes with each start of the system: what was written before a start and not synced may be
// lost. It is "" if the system does not provide one; then it is not known whether there was a start. It is a variable,
// so that tests can simulate one.
var BootID = bootID
