// Command kiln turns a game's source files into game-ready content.
package main

import "github.com/kiln-pipeline/kiln"

func main() { kiln.Main() }
