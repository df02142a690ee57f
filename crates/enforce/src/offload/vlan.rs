//! VLAN tags (IEEE 802.1Q) in frames with a virtio-net header.

use super::vnet::VnetHeader;

/// The two Ethernet addresses.
pub(super) const ADDRESSES: usize = 12;

/// What stands between a frame's Ethernet addresses and its EtherType.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanTag {
    /// The tag protocol identifier: that of a customer or of a provider.
    pub kind: u16,
    /// Priority and VLAN identifier.
    pub control: u16,
}

impl VlanTag {
    /// The identifier of a customer's tag.
    pub const CUSTOMER: u16 = 0x8100;
    /// That of a provider's (IEEE 802.1ad).
    pub const PROVIDER: u16 = 0x88A8;
    /// The length of a tag, in bytes.
    pub const LENGTH: usize = 4;

    /// Puts the tag into the frame that fills the first `length` bytes of `buffer`, virtio-net header first,
    /// and tells its new length; `None` if there is no room for it, or no frame.
    pub fn insert(&self, buffer: &mut [u8], length: usize) -> Option<usize> {
        let place = VnetHeader::LENGTH + ADDRESSES;
        let longer = length + Self::LENGTH;
        if length < place || longer > buffer.len() {
            return None;
        }
        buffer.copy_within(place..length, place + Self::LENGTH);
        let tag = buffer.get_mut(place..)?.first_chunk_mut()?;
        let ([k0, k1], [c0, c1]) = (self.kind.to_be_bytes(), self.control.to_be_bytes());
        *tag = [k0, k1, c0, c1];
        VnetHeader::shift(buffer, Self::LENGTH as u16);
        Some(longer)
    }
}
