"""Messages of administrators that kafka-python has no classes for: delegation tokens, brokers and voters."""

from kview.wire.schemas import message

CreateDelegationTokenRequest = message("CreateDelegationTokenRequest")
CreateDelegationTokenResponse = message("CreateDelegationTokenResponse")
"""API 38: a client that has logged in gets a token (KIP-48)."""

RenewDelegationTokenRequest = message("RenewDelegationTokenRequest")
RenewDelegationTokenResponse = message("RenewDelegationTokenResponse")
"""API 39: a token is to be valid for longer."""

ExpireDelegationTokenRequest = message("ExpireDelegationTokenRequest")
ExpireDelegationTokenResponse = message("ExpireDelegationTokenResponse")
"""API 40: a token is to end sooner, or now."""

DescribeDelegationTokenRequest = message("DescribeDelegationTokenRequest")
DescribeDelegationTokenResponse = message("DescribeDelegationTokenResponse")
"""API 41: tokens by their owners."""

UnregisterBrokerRequest = message("UnregisterBrokerRequest")
UnregisterBrokerResponse = message("UnregisterBrokerResponse")
"""API 64: a broker that will not come back."""

AddRaftVoterRequest = message("AddRaftVoterRequest")
AddRaftVoterResponse = message("AddRaftVoterResponse")
"""API 80: a controller becomes a voter of the quorum (KIP-853)."""

RemoveRaftVoterRequest = message("RemoveRaftVoterRequest")
RemoveRaftVoterResponse = message("RemoveRaftVoterResponse")
"""API 81: a voter leaves the quorum (KIP-853)."""
