//! The distributions of flow sizes that papers use, each with its source.

/// A distribution with a name.
#[derive(Debug)]
pub(super) struct NamedDistribution {
    pub(super) name: &'static str,
    /// The unit of the sizes in bytes.
    pub(super) unit: u64,
    /// Sizes, and the fraction of flows up to each.
    pub(super) points: &'static [(u64, f64)],
}

/// The data of a full packet.
pub(super) const PACKET: u64 = 1460;

pub(super) const WEB_SEARCH: &NamedDistribution = &KNOWN[0];
pub(super) const DATA_MINING: &NamedDistribution = &KNOWN[1];

/// All of them. A flow has at least one byte: where a table begins with size 0, this one begins with 1.
pub(super) const KNOWN: [NamedDistribution; 5] = [
    // The DCTCP paper (Alizadeh et al., SIGCOMM 2010), figure 4, as tabulated for the pFabric paper's
    // simulations (Alizadeh et al., SIGCOMM 2013). The mean is 1.7 MB.
    NamedDistribution {
        name: "web-search",
        unit: PACKET,
        points: &[
            (1, 0.0),
            (6, 0.15),
            (13, 0.2),
            (19, 0.3),
            (33, 0.4),
            (53, 0.53),
            (133, 0.6),
            (667, 0.7),
            (1_333, 0.8),
            (3_333, 0.9),
            (6_667, 0.97),
            (20_000, 1.0),
        ],
    },
    // VL2 (Greenberg et al., SIGCOMM 2009), figure 2, as tabulated for the pFabric paper. The mean is 7.5 MB.
    NamedDistribution {
        name: "data-mining",
        unit: PACKET,
        points: &[
            (1, 0.5),
            (2, 0.6),
            (3, 0.7),
            (7, 0.8),
            (267, 0.9),
            (2_107, 0.95),
            (66_667, 0.99),
            (666_667, 1.0),
        ],
    },
    // Hadoop at Facebook (Roy et al., SIGCOMM 2015), as tabulated for the HPCC paper (Li et al., SIGCOMM
    // 2019): `traffic_gen/FbHdp_distribution.txt` of its repository,
    // github.com/alibaba-edu/High-Precision-Congestion-Control. The mean is 120 kB.
    NamedDistribution {
        name: "fb-hadoop",
        unit: 1,
        points: &FB_HADOOP,
    },
    // Alibaba's distributed storage system in 2019: `traffic_gen/AliStorage2019.txt` of the same repository. The
    // mean is 41 kB.
    NamedDistribution {
        name: "ali-storage-2019",
        unit: 1,
        points: &ALI_STORAGE_2019,
    },
    // Google's RPCs before 2008: `traffic_gen/GoogleRPC2008.txt` of the same repository. The mean is 2.9 kB.
    NamedDistribution {
        name: "google-rpc-2008",
        unit: 1,
        points: &GOOGLE_RPC_2008,
    },
];

const FB_HADOOP: [(u64, f64); 20] = [
    (1, 0.0),
    (100, 0.01),
    (200, 0.02),
    (300, 0.05),
    (350, 0.15),
    (400, 0.2),
    (500, 0.3),
    (600, 0.4),
    (700, 0.5),
    (1_000, 0.6),
    (2_000, 0.67),
    (7_000, 0.7),
    (30_000, 0.72),
    (50_000, 0.82),
    (80_000, 0.87),
    (120_000, 0.9),
    (300_000, 0.95),
    (1_000_000, 0.975),
    (2_000_000, 0.99),
    (10_000_000, 1.0),
];

const ALI_STORAGE_2019: [(u64, f64); 9] = [
    (1, 0.0),
    (4_000, 0.2293),
    (8_000, 0.6921),
    (16_000, 0.8061),
    (32_000, 0.9047),
    (64_000, 0.9353),
    (128_000, 0.9677),
    (256_000, 0.9753),
    (2_000_000, 1.0),
];

/// 87 of the 843 points of the table. Between them, a straight line differs from the others by at most 0.1 %
/// of the flows; the mean is half a percent larger.
const GOOGLE_RPC_2008: [(u64, f64); 87] = [
    (1, 0.0),
    (3, 0.064_882_6),
    (32, 0.097_323_9),
    (40, 0.120_503),
    (53, 0.143_681),
    (64, 0.155_271),
    (70, 0.187_988),
    (77, 0.220_705),
    (85, 0.253_422),
    (96, 0.286_139),
    (110, 0.318_856),
    (128, 0.351_573),
    (146, 0.388_155),
    (171, 0.424_737),
    (186, 0.443_028),
    (205, 0.461_319),
    (228, 0.47961),
    (256, 0.497_901),
    (268, 0.523_994),
    (296, 0.576_179),
    (331, 0.628_365),
    (352, 0.654_457),
    (375, 0.68055),
    (402, 0.706_643),
    (433, 0.732_736),
    (469, 0.758_828),
    (512, 0.784_921),
    (597, 0.807_286),
    (717, 0.829_652),
    (843, 0.846_426),
    (1_084, 0.868_273),
    (1_365, 0.886_031),
    (1_755, 0.901_252),
    (2_458, 0.917_559),
    (3_277, 0.928_431),
    (4_233, 0.936_848),
    (5_183, 0.947_265),
    (6_349, 0.955_787),
    (7_936, 0.963_362),
    (10_026, 0.971_767),
    (11_995, 0.977_236),
    (14_292, 0.981_711),
    (16_540, 0.984_802),
    (20_924, 0.987_171),
    (26_719, 0.98911),
    (34_784, 0.990_733),
    (45_677, 0.992_015),
    (61_108, 0.993_049),
    (66_647, 0.993_385),
    (80_798, 0.994_719),
    (97_492, 0.995_795),
    (116_797, 0.996_655),
    (133_332, 0.997_174),
    (165_417, 0.997_679),
    (206_220, 0.998_094),
    (313_344, 0.998_795),
    (371_371, 0.999_068),
    (435_957, 0.999_286),
    (504_504, 0.999_457),
    (529_425, 0.999_503),
    (646_632, 0.999_597),
    (793_885, 0.999_675),
    (955_288, 0.999_733),
    (1_148_112, 0.999_781),
    (1_383_231, 0.999_821),
    (1_659_327, 0.999_854),
    (1_960_314, 0.999_879),
    (2_245_424, 0.999_897),
    (2_693_059, 0.999_917),
    (3_166_500, 0.999_932),
    (3_710_020, 0.999_945),
    (4_300_563, 0.999_955),
    (5_114_695, 0.999_965),
    (5_368_784, 0.999_967),
    (5_649_438, 0.99997),
    (5_961_053, 0.999_972),
    (6_309_051, 0.999_975),
    (6_700_199, 0.999_977),
    (7_143_054, 0.99998),
    (7_648_594, 0.999_982),
    (8_231_141, 0.999_985),
    (8_909_743, 0.999_987),
    (9_710_291, 0.99999),
    (10_668_901, 0.999_992),
    (11_837_511, 0.999_995),
    (13_293_619, 0.999_997),
    (15_158_197, 1.0),
];
