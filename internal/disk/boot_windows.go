package disk

import (
	"strconv"

	"golang.org/x/sys/windows/registry"
)

// Boot tells this start of the computer from others; "" where that is not known, and then nobody notices that it lost power. Windows counts its starts.
func Boot() string {
	k, err := registry.OpenKey(registry.LOCAL_MACHINE, `SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management\PrefetchParameters`, registry.QUERY_VALUE)
	if err != nil {
		return ""
	}
	defer k.Close()
	n, _, err := k.GetIntegerValue("BootId")
	if err != nil {
		return ""
	}
	return strconv.FormatUint(n, 10)
}
