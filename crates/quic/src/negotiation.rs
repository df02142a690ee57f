//! Version negotiation: a server chooses the version of a connection, and a client checks the
//! choice for tampering (RFC 9368).

use std::sync::Arc;

use weir_units::Time;

use crate::crypto::{Answerer, ClientOffer, ServerAnswer};
use crate::known_peers::KnownClients;
use crate::transport_parameters::{TransportParameters, VersionInformation};
use crate::{Code, Side, TransportError, Version, Versions};

/// Returns the answerer for a client that started in version `begun`. It chooses the most preferred
/// of `versions` that the client accepts, and answers with these parameters. A client that has
/// abandoned a key of `known_clients` learns whether it was used.
pub(crate) fn answerer(
    begun: Version,
    versions: Versions,
    mut parameters: TransportParameters,
    known_clients: Option<(Arc<KnownClients>, Time)>,
    grease: u64,
) -> Answerer {
    Box::new(move |offer| {
        let client = TransportParameters::decode(Side::Client, offer.parameters)?;
        let version = choose(begun, versions, offer, &client)?;
        if let (Some((credential, key_id)), Some((clients, now))) =
            (client.abandoned_key, known_clients)
        {
            let result = clients.abandon(now, &credential, key_id);
            parameters.abandoned_answer = Some((result, clients.memory(now)));
        }
        parameters.version_information = Some(information(version, versions));
        let mut encoded = Vec::with_capacity(256);
        parameters.encode(Side::Server, &mut encoded, Some(grease));
        Ok(ServerAnswer {
            version,
            parameters: encoded,
        })
    })
}

fn choose(
    begun: Version,
    versions: Versions,
    offer: &ClientOffer<'_>,
    client: &TransportParameters,
) -> Result<Version, TransportError> {
    let Some(client) = &client.version_information else {
        return Ok(begun);
    };
    if client.chosen != begun.as_u32() {
        return Err(tampered(
            "the client did not choose the version of its packets",
        ));
    }
    // The keys of early data belong to the version of its packets.
    if offer.early_data {
        return Ok(begun);
    }
    Ok(versions.choose(&client.available).unwrap_or(begun))
}

/// Returns the version information of a side.
pub(crate) fn information(chosen: Version, available: Versions) -> VersionInformation {
    VersionInformation {
        chosen: chosen.as_u32(),
        available: available.numbers(),
    }
}

/// How a client arrived at its version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NegotiationOutcome {
    /// The versions that it accepts.
    pub(crate) versions: Versions,
    /// The version of this attempt's first packets.
    pub(crate) begun: Version,
    /// Whether a Version Negotiation packet led to it.
    pub(crate) renegotiated: bool,
}

/// Checks, with the server's authenticated version information, that both sides would have chosen
/// this version without an attacker (RFC 9368, section 4).
pub(crate) fn check_server(
    course: &NegotiationOutcome,
    in_use: Version,
    server: Option<&VersionInformation>,
) -> Result<(), TransportError> {
    let Some(server) = server else {
        // A server without RFC 9368 supports version 1 only (section 8).
        let plain = in_use == course.begun && (!course.renegotiated || in_use == Version::V1);
        return plain.then_some(()).ok_or_else(|| {
            tampered("the server negotiated a version and does not say which ones it has")
        });
    };
    if server.chosen != in_use.as_u32() {
        return Err(tampered(
            "the server did not choose the version of its packets",
        ));
    }
    if course.renegotiated && course.versions.choose(&server.available) != Some(course.begun) {
        return Err(tampered(
            "the server has a better version than the Version Negotiation packet said",
        ));
    }
    Ok(())
}

fn tampered(reason: &'static str) -> TransportError {
    TransportError::new(Code::VERSION_NEGOTIATION_ERROR, reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Version::{V1, V2};

    fn offered(chosen: Version, available: Versions) -> Vec<u8> {
        let parameters = TransportParameters {
            version_information: Some(information(chosen, available)),
            ..TransportParameters::default()
        };
        let mut encoded = Vec::new();
        parameters.encode(Side::Client, &mut encoded, None);
        encoded
    }

    fn answer(
        begun: Version,
        versions: Versions,
        parameters: &[u8],
        early_data: bool,
    ) -> Result<ServerAnswer, TransportError> {
        let offer = ClientOffer {
            parameters,
            early_data,
        };
        answerer(begun, versions, TransportParameters::default(), None, 0)(&offer)
    }

    #[test]
    fn the_server_chooses_among_the_clients_versions() {
        for (begun, client, server, expected) in [
            (V1, Versions::V1, Versions::V2_AND_V1, V1),
            (V1, Versions::V1_AND_V2, Versions::V2_AND_V1, V2),
            (V1, Versions::V2_AND_V1, Versions::V1_AND_V2, V1),
            (V2, Versions::V2_AND_V1, Versions::V1_AND_V2, V1),
            (V2, Versions::only(V2), Versions::V1_AND_V2, V2),
        ] {
            let answer = answer(begun, server, &offered(begun, client), false).unwrap();
            assert_eq!(answer.version, expected);
            let said = TransportParameters::decode(Side::Server, &answer.parameters).unwrap();
            assert_eq!(
                said.version_information,
                Some(information(expected, server))
            );
        }
    }

    #[test]
    fn clients_without_information_or_with_0rtt_keep_their_version() {
        let silent = answer(V1, Versions::V2_AND_V1, &[], false).unwrap();
        assert_eq!(silent.version, V1);
        let offer = offered(V1, Versions::V1_AND_V2);
        let early = answer(V1, Versions::V2_AND_V1, &offer, true).unwrap();
        assert_eq!(early.version, V1);
    }

    #[test]
    fn a_tampered_chosen_version_is_detected() {
        let offer = offered(V2, Versions::V2_AND_V1);
        let error = answer(V1, Versions::V1_AND_V2, &offer, false).unwrap_err();
        assert_eq!(error.code, Code::VERSION_NEGOTIATION_ERROR);
    }

    #[test]
    fn a_client_detects_a_version_downgrade() {
        let course = |begun, renegotiated| NegotiationOutcome {
            versions: Versions::V2_AND_V1,
            begun,
            renegotiated,
        };
        let both = information(V1, Versions::V1_AND_V2);
        let only_v1 = information(V1, Versions::V1);
        check_server(&course(V1, false), V1, Some(&both)).unwrap();
        check_server(&course(V1, true), V1, Some(&only_v1)).unwrap();
        check_server(&course(V1, true), V1, None).unwrap();
        check_server(&course(V2, false), V2, None).unwrap();
        for (course, in_use, server) in [
            // It would have chosen version 2 if the packet had listed it.
            (course(V1, true), V1, Some(&both)),
            (course(V2, true), V2, None),
            (course(V1, false), V2, None),
            (course(V2, false), V2, Some(&both)),
        ] {
            let error = check_server(&course, in_use, server).unwrap_err();
            assert_eq!(error.code, Code::VERSION_NEGOTIATION_ERROR);
        }
    }
}
