package config

import (
	"context"
	"slices"

	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// remembered are the fields of an InfraEnv that assisted-service remembers when they are stated no more: it takes over values, and not that there is none any more. What somebody else states there
// is his.
var remembered = []struct {
	path  []string
	empty func(*assisted.InfraEnvSpec) bool
}{
	{[]string{"sshAuthorizedKey"}, func(s *assisted.InfraEnvSpec) bool { return s.SSHAuthorizedKey == "" }},
	{[]string{"ignitionConfigOverride"}, func(s *assisted.InfraEnvSpec) bool { return s.IgnitionConfigOverride == "" }},
	{[]string{"additionalNTPSources"}, func(s *assisted.InfraEnvSpec) bool { return len(s.AdditionalNTPSources) == 0 }},
	{[]string{"proxy", "httpProxy"}, func(s *assisted.InfraEnvSpec) bool { return proxyOf(s).HTTPProxy == "" }},
	{[]string{"proxy", "httpsProxy"}, func(s *assisted.InfraEnvSpec) bool { return proxyOf(s).HTTPSProxy == "" }},
	{[]string{"proxy", "noProxy"}, func(s *assisted.InfraEnvSpec) bool { return proxyOf(s).NoProxy == "" }},
}

func proxyOf(spec *assisted.InfraEnvSpec) aiv1beta1.Proxy {
	if spec.Proxy == nil {
		return aiv1beta1.Proxy{}
	}
	return *spec.Proxy
}

// withdraw deletes an InfraEnv that states what is wanted no more and would be remembered, such as the key of somebody who is not to log in any more: it is made anew. Once the image was handed out that
// would be a wrong move: whoever has it, or is given it meanwhile, could not register.
func (r *Reconciler) withdraw(ctx context.Context, s *scope, wanted *assisted.InfraEnv) (bool, error) {
	if s.Namesake == nil || s.DataHandedOut() || s.HostChosen() {
		return true, nil
	}
	for _, field := range remembered {
		if !field.empty(&wanted.Spec) || field.empty(&s.Namesake.Spec) || !r.applier.Owns(s.Namesake, slices.Concat([]string{"spec"}, field.path)...) {
			continue
		}
		if err := kube.Delete(ctx, r.Client, s.Namesake); err != nil {
			return false, err
		}
		return s.wait(bootstrapv1.DiscoveryImageReadyCondition, bootstrapv1.WaitingForDiscoveryImageReason,
			"InfraEnv %s is made anew: assisted-service would keep its %s, which is not wanted any more", s.Namesake.Name, field.path[0])
	}
	return true, nil
}
