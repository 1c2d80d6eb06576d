package asset

import "testing"

func TestMeant(t *testing.T) {
	var table Table
	for _, p := range []string{"sprites/ui/tank.png", "sprites/ui/heart.png", "models/knight.gltf", "music/theme.ogg"} {
		table.Assets = append(table.Assets, Asset{ID: p, Path: p})
	}
	for pattern, want := range map[string]string{
		"tank.png":               "sprites/ui/tank.png", // a bare file name
		"spirtes":                "sprites",             // swapped letters in a folder
		"spirtes/":               "sprites",
		"sprites/iu/tank.png":    "sprites/ui/tank.png",
		"spirtes/**/*.png":       "sprites/**/*.png", // and in a glob
		"sprites/ui/*.pgn":       "sprites/ui/*.png",
		"models/kinght.gltf":     "models/knight.gltf",
		"spirtes/ui/haert.png":   "sprites/ui/heart.png",
		"nothing/like/it.at.all": "",
	} {
		if got := table.Suggest(pattern); got != want {
			t.Errorf("%q was taken for %q, not %q", pattern, got, want)
		}
	}
}
