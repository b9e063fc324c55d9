package assisted

import aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"

// NetworkMACs returns the MAC addresses, normalised, by which assisted-service finds the hosts of an NMStateConfig.
func NetworkMACs(network *aiv1beta1.NMStateConfig) []string {
	addresses := make([]string, 0, len(network.Spec.Interfaces))
	for _, i := range network.Spec.Interfaces {
		if i != nil {
			addresses = append(addresses, i.MacAddress)
		}
	}
	return normaliseMACs(addresses)
}
