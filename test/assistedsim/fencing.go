package assistedsim

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	"github.com/openshift/assisted-service/models"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// fencing is what the service reads of the Secret that an Agent names: the credentials as it keeps them, or why it
// cannot. Both are empty where none is named.
type fencing struct {
	credentials string
	err         error
}

// readFencing reads the Secret that an Agent names. A key that is missing counts as empty; a Secret that is missing
// keeps the service from reading the rest of the Agent (updateHostFencingCredentials in agent_controller.go, August
// 2026).
func (s *Simulator) readFencing(ctx context.Context, agent *aiv1beta1.Agent) fencing {
	name := agent.Spec.FencingCredentialsSecretRef
	if name == "" {
		return fencing{}
	}
	secret := &corev1.Secret{}
	if err := s.live.Get(ctx, types.NamespacedName{Namespace: agent.Namespace, Name: name}, secret); err != nil {
		return fencing{err: fmt.Errorf("failed to get secret %s: %w", name, err)}
	}
	if err := s.labelUsed(ctx, secret); err != nil {
		return fencing{err: err}
	}
	told := map[string]string{}
	for _, key := range []string{"address", "username", "password"} {
		told[key] = string(secret.Data[key])
	}
	if verification, found := secret.Data["certificateVerification"]; found {
		told["certificate_verification"] = string(verification)
	}
	content, err := json.Marshal(told)
	return fencing{string(content), err}
}

// applyFencing takes in other credentials than the service has of a host. It never forgets them.
func (s *Simulator) applyFencing(h *host) error {
	found := h.fencing
	switch c := s.clusters[h.cluster]; {
	case found.err != nil:
		return found.err
	case found.credentials == "" || found.credentials == h.requested.fencing:
		return nil
	case s.faults.unfenced[h.key.Namespace]:
		return inputErrorf("TNF clusters support is disabled, cannot set fencing credentials to host %s in infra-env %s",
			h.key.Name, h.infraEnv.key.Name)
	case c != nil && c.platform() != hiveext.BareMetalPlatformType && c.platform() != hiveext.NonePlatformType:
		return inputErrorf("Cannot set fencing credentials to host %s in infra-env %s: cluster's platform must be baremetal or none",
			h.key.Name, h.infraEnv.key.Name)
	}
	h.requested.fencing = found.credentials
	return nil
}

// allFenced reports whether the service has the credentials of each master.
func allFenced(members []*host) bool {
	return !slices.ContainsFunc(members, func(h *host) bool { return h.role == models.HostRoleMaster && h.requested.fencing == "" })
}

// DisableFencing lets the service refuse credentials of BMCs of the hosts of a namespace, as one that was started
// without TNF_CLUSTERS_SUPPORT.
func (s *Simulator) DisableFencing(namespace string, disabled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.unfenced[namespace] = disabled
	for key, h := range s.hosts {
		if key.Namespace == namespace {
			s.touchHost(h)
		}
	}
}
