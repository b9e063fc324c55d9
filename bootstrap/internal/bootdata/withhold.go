package bootdata

import (
	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/bootmode"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/preflight"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
)

// withhold blocks the bootstrap data, because the infrastructure provider chooses a host once the data exist. The
// block lasts while the provider could start a server in use, or write to the disk of a server that is not the
// host's. The block also lasts while the hosts that the provider could choose are unknown.
func withhold(s *scope.Scope, mode bootmode.Mode) (proceed bool) {
	reason, message := preflight.Withheld(s.Facts, mode.Name() == bootstrapv1.BootModeDiskImage)
	if reason == "" {
		return true
	}
	return s.Block(bootstrapv1.DataSecretAvailableCondition, reason, message)
}
