package facts

import (
	"cmp"
	"net/netip"
)

// Name is the result of a DNS look-up from the hub.
type Name struct {
	// Answered is false until DNS has answered.
	Answered bool
	// Addresses are sorted; empty if the name does not exist.
	Addresses []netip.Addr
	// Failure is why the look-up failed; "" if it did not.
	Failure string
}

// Domain returns the DNS domain of the cluster itself: <clusterName>.<baseDomain>.
func (f *Facts) Domain() string {
	config := &f.ControlPlane.Spec.Config
	return cmp.Or(config.ClusterName, f.ClusterName()) + "." + config.BaseDomain
}
