// Package nmstate has the functions of nmstate's Go binding that assisted-service calls, without the C library behind it.
// assisted-service needs them for static networks (NMStateConfig) only.
package nmstate

import "errors"

// Nmstate translates descriptions of networks; here it cannot.
type Nmstate struct{}

// New returns an Nmstate.
func New() *Nmstate {
	return &Nmstate{}
}

// GenerateConfiguration would return the files that make NetworkManager set up the wanted network.
func (*Nmstate) GenerateConfiguration(string) (string, error) {
	return "", errors.New("this assisted-service is built without libnmstate: it cannot do static networks")
}
