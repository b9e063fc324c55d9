package facts

import (
	"cmp"
	"net/netip"
)

// Name is where a DNS name leads, as seen from the hub.
type Name struct {
	// Answered is false as long as there was no answer.
	Answered bool
	// Addresses are sorted; there are none when the name does not exist.
	Addresses []netip.Addr
	// Failure is why it cannot be told; empty when it can.
	Failure string
}

// Domain is the DNS domain of the cluster itself: <clusterName>.<baseDomain>.
func (f *Facts) Domain() string {
	config := &f.ControlPlane.Spec.Config
	return cmp.Or(config.ClusterName, f.ClusterName()) + "." + config.BaseDomain
}
