package metal3

import "k8s.io/apimachinery/pkg/api/resource"

// Size returns a number of bytes in the units of a resource quantity, in full Mi: 16Gi, 32100Mi. Users compare it with the
// quantity that they require.
func Size(bytes int64) string {
	const mebibyte = 1 << 20
	return resource.NewQuantity(bytes/mebibyte*mebibyte, resource.BinarySI).String()
}
