// Package role knows what pictures are for. Models decide it for the pictures that they use (models.go). For all others it is the file's
// name (names.go), by the conventions of sites, painting programs and engines (words.go).
//
// A name that is wrongly taken for one of data makes colours wrong, so words that also occur in other names need company: a second picture
// of the same thing.
package role
