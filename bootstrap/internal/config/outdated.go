package config

import (
	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/bootmode"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// InfraEnvAnnotation says, on a bootstrap data secret, from which InfraEnv its data is, by the id that assisted-service gave it.
const InfraEnvAnnotation = "bootstrap.cluster.x-k8s.io/discovery-infraenv"

// bootImageOutdated tells whether the host was given the image or ignition of an InfraEnv that assisted-service no longer has: it was made anew, or the
// service lost its database. Nothing answers such a host, and it gets no other image, as it was chosen already. What cannot be told is not outdated, nor
// what a host has booted.
func (s *scope) bootImageOutdated(mode bootmode.Mode) bool {
	if s.HostMayHaveBooted() {
		return false
	}
	offered := assisted.InfraEnvOfURL(mode.Source(assisted.ObserveImage(s.infraEnv)))
	booted := s.bootedInfraEnv(mode)
	return offered != "" && booted != "" && offered != booted
}

// bootedInfraEnv is the id of the InfraEnv whose image or ignition the host was given; empty when it is unknown.
func (s *scope) bootedInfraEnv(mode bootmode.Mode) string {
	switch {
	case mode.UserDataFollowsSource() && s.DataSecret != nil:
		return s.DataSecret.Annotations[InfraEnvAnnotation]
	case mode.UserDataFollowsSource():
		return ""
	case s.Host != nil && s.Host.Spec.Image != nil:
		return assisted.InfraEnvOfURL(s.Host.Spec.Image.URL)
	}
	return assisted.InfraEnvOfURL(bootmode.BootImageURL(s.InfraMachine))
}

func (s *scope) waitForAnotherMachine() (bool, error) {
	message := "the host was given the discovery image of an InfraEnv that assisted-service no longer has, and cannot register: delete the Machine, so that another one takes its place"
	if s.Config.Status.AgentRef != nil {
		message = "the host was given the discovery image of an InfraEnv that assisted-service no longer has, and its Agent is gone: unless the host runs the installed system, delete the Machine, so that another one takes its place"
	}
	return s.wait(bootstrapv1.DataSecretAvailableCondition, bootstrapv1.BootImageOutdatedReason, "%s", message)
}
