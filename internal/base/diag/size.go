package diag

import "fmt"

// Size formats a number of bytes for display, in powers of a thousand: "512 B", "1.4 MB".
func Size(bytes int64) string {
	if bytes < 1000 {
		return fmt.Sprintf("%d B", bytes)
	}
	v, units := float64(bytes)/1000, "kMGTPE"
	for v >= 999.5 {
		v, units = v/1000, units[1:]
	}
	if v < 9.95 {
		return fmt.Sprintf("%.1f %cB", v, units[0])
	}
	return fmt.Sprintf("%.0f %cB", v, units[0])
}
