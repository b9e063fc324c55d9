package assistedsim

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"github.com/openshift/assisted-service/models"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// fencing is the result of reading the Secret that an Agent refers to: the credentials in the form that the
// service stores, or an error. Both are empty without a reference.
type fencing struct {
	credentials string
	err         error
}

// readFencing reads the Secret that an Agent refers to. A missing key counts as empty. A missing Secret blocks
// all other fields of the Agent (updateHostFencingCredentials in agent_controller.go, August 2026).
func (s *Simulator) readFencing(ctx context.Context, agent *Agent) fencing {
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
	credentials := map[string]string{}
	for _, key := range []string{"address", "username", "password"} {
		credentials[key] = string(secret.Data[key])
	}
	if verification, found := secret.Data["certificateVerification"]; found {
		credentials["certificate_verification"] = string(verification)
	}
	content, err := json.Marshal(credentials)
	return fencing{string(content), err}
}

// applyFencing stores changed credentials of a host. The service never deletes credentials.
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

// DisableFencing makes the service reject BMC credentials for hosts of a namespace, like a service without
// TNF_CLUSTERS_SUPPORT.
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
